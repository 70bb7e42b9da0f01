//! The values that statements take, and the type that each has in PostgreSQL. Knows no statement.

use leasehold_core::Timestamp;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// The parameters of a statement.
pub(crate) type Params<'a> = [&'a (dyn Param + Sync)];

/// A value that a statement takes.
pub(crate) trait Param: ToSql + Sync {
    /// Returns the type that the statement expects.
    fn sql_type(&self) -> Type;
}

impl<T: SqlType> Param for T {
    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// A Rust type whose values always have the same type in statements.
pub(crate) trait SqlType: ToSql + Sync {
    /// The type of a value.
    const TYPE: Type;
    /// The type of an array of values.
    const ARRAY: Type;
}

macro_rules! sql_type {
    ($rust:ty, $one:ident, $array:ident) => {
        impl SqlType for $rust {
            const TYPE: Type = Type::$one;
            const ARRAY: Type = Type::$array;
        }
    };
}

sql_type!(bool, BOOL, BOOL_ARRAY);
sql_type!(i16, INT2, INT2_ARRAY);
sql_type!(i32, INT4, INT4_ARRAY);
sql_type!(i64, INT8, INT8_ARRAY);
sql_type!(f64, FLOAT8, FLOAT8_ARRAY);
sql_type!(&str, TEXT, TEXT_ARRAY);
sql_type!(String, TEXT, TEXT_ARRAY);
sql_type!(&[u8], BYTEA, BYTEA_ARRAY);
sql_type!(Vec<u8>, BYTEA, BYTEA_ARRAY);
sql_type!(Uuid, UUID, UUID_ARRAY);
sql_type!(Timestamp, TIMESTAMPTZ, TIMESTAMPTZ_ARRAY);
sql_type!(serde_json::Value, JSONB, JSONB_ARRAY);

impl<T: SqlType> SqlType for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: SqlType> SqlType for &T {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

/// PostgreSQL has one type for arrays of any dimension.
impl<T: SqlType> SqlType for Vec<T> {
    const TYPE: Type = T::ARRAY;
    const ARRAY: Type = T::ARRAY;
}

impl<T: SqlType> SqlType for &[T] {
    const TYPE: Type = T::ARRAY;
    const ARRAY: Type = T::ARRAY;
}
