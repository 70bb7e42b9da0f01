//! Records: structs whose fields name their columns, so that one list defines the struct, the row reader and the check of selected columns.

use leasehold_core::{JsonText, Named, Timestamp};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// A row of a database: values by column name, none where NULL.
pub trait RecordRow {
    /// The error of a failed read.
    type Error;

    /// Reads an integer of any size.
    fn integer(&self, column: &str) -> Result<Option<i64>, Self::Error>;
    /// Reads a floating-point number.
    fn float(&self, column: &str) -> Result<Option<f64>, Self::Error>;
    /// Reads a text.
    fn text(&self, column: &str) -> Result<Option<String>, Self::Error>;
    /// Reads an id.
    fn uuid(&self, column: &str) -> Result<Option<Uuid>, Self::Error>;
    /// Reads a timestamp.
    fn time(&self, column: &str) -> Result<Option<Timestamp>, Self::Error>;
    /// Reads a JSON document as text.
    fn json_text(&self, column: &str) -> Result<Option<JsonText>, Self::Error>;
    /// Builds the error for an invalid value.
    fn invalid(&self, column: &str, why: &dyn Display) -> Self::Error;
}

/// A type that can be read from one column.
pub trait Column: Sized {
    /// Reads the value; none where the column is NULL.
    ///
    /// # Errors
    /// If the column does not exist or has another type.
    fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error>;

    /// Reads the value.
    ///
    /// # Errors
    /// As [`Column::read_or_null`], and if the column is NULL.
    fn read<R: RecordRow>(row: &R, column: &str) -> Result<Self, R::Error> {
        Self::read_or_null(row, column)?.ok_or_else(|| row.invalid(column, &"value is NULL"))
    }
}

impl<T: Column> Column for Option<T> {
    fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
        T::read_or_null(row, column).map(Some)
    }
}

macro_rules! as_is {
    ($($type:ty: $read:ident),* $(,)?) => {
        $(impl Column for $type {
            fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
                row.$read(column)
            }
        })*
    };
}

as_is! {
    i64: integer,
    f64: float,
    String: text,
    Timestamp: time,
    JsonText: json_text,
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {
        $(impl Column for $type {
            fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
                let stored = row.integer(column)?.map(Self::try_from).transpose();
                stored.map_err(|error| row.invalid(column, &error))
            }
        })*
    };
}

whole_numbers!(i16, u32, u64);

macro_rules! ids {
    ($($type:ty),* $(,)?) => {
        $(impl Column for $type {
            fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
                Ok(row.uuid(column)?.map(Self::from))
            }
        })*
    };
}

ids! {
    leasehold_core::WorkspaceId,
    leasehold_core::DefinitionId,
    leasehold_core::VersionId,
    leasehold_core::RequestId,
    leasehold_core::ExecutionId,
}

impl Column for leasehold_core::JobId {
    fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
        Ok(row.integer(column)?.map(Self))
    }
}

/// Microseconds.
impl Column for Duration {
    fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
        let stored = row.integer(column)?;
        Ok(stored.map(|micros| Self::from_micros(micros.try_into().unwrap_or_default())))
    }
}

/// A name that this program may not know.
impl<T: FromStr> Column for Named<T> {
    fn read_or_null<R: RecordRow>(row: &R, column: &str) -> Result<Option<Self>, R::Error> {
        let unknown = |name: &str| Self::Unknown(name.into());
        let name = row.text(column)?;
        Ok(name.map(|name| name.parse().map_or_else(|_| unknown(&name), Self::Known)))
    }
}

/// Declares a struct whose fields are followed by the column they are read from: `pub id: RequestId = "id",`. A field with `else` takes that value if
/// its column cannot be read. A field with `=> function` is built from several columns by that function of the row.
///
/// Generates `read`, which reads the struct from a row of any store.
macro_rules! record {
    ($(#[$about:meta])* pub struct $record:ident {
        $($(#[$doc:meta])* pub $field:ident: $type:ty $(= $column:literal $(else $fallback:expr)?)? $(=> $read:path)?,)*
    }) => {
        $(#[$about])*
        pub struct $record {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $record {
            /// Reads the record from a row that has all of its columns.
            ///
            /// # Errors
            /// If a column is missing or has another type.
            pub fn read<R: $crate::record::RecordRow>(row: &R) -> Result<Self, R::Error> {
                Ok(Self {
                    $($field: $crate::record::field!(row $(, $column $(, $fallback)?)? $(, => $read)?),)*
                })
            }
        }
    };
}

macro_rules! field {
    ($row:ident, $column:literal) => {
        $crate::record::Column::read($row, $column)?
    };
    ($row:ident, $column:literal, $fallback:expr) => {
        $crate::record::Column::read($row, $column).unwrap_or_else(|_| $fallback)
    };
    ($row:ident, => $read:path) => {
        $read($row)?
    };
}

pub(crate) use {field, record};
