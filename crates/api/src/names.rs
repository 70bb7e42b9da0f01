//! Builds OpenAPI schemas from the core's lists of names, so that each name is written once, in the core.

/// Defines the schema of a string that is one of the core's names.
macro_rules! names {
    ($(#[doc = $doc:literal])* $schema:ident = $names:expr) => {
        $(#[doc = $doc])*
        pub enum $schema {}

        impl utoipa::PartialSchema for $schema {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some(concat!($($doc),*).trim()))
                    .enum_values(Some($names))
                    .into()
            }
        }

        impl utoipa::ToSchema for $schema {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($schema).into()
            }
        }
    };
}

pub(crate) use names;
