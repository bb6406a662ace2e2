//! Logical types: what DuckDB passes in, and the few types this extension declares.

use super::sys::*;
use std::ffi::CStr;
use std::fmt;

/// Width and sign of a SQL integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntType {
    /// TINYINT.
    I8,
    /// SMALLINT.
    I16,
    /// INTEGER.
    I32,
    /// BIGINT.
    I64,
    /// HUGEINT.
    I128,
    /// UTINYINT.
    U8,
    /// USMALLINT.
    U16,
    /// UINTEGER.
    U32,
    /// UBIGINT.
    U64,
    /// UHUGEINT.
    U128,
}

/// Type of an argument, as far as this extension tells types apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// The type of an untyped NULL, or of the elements of `[]`.
    Null,
    /// A parameter of a prepared statement that has no value yet.
    Unresolved,
    /// Any integer.
    Int(IntType),
    /// BOOLEAN.
    Boolean,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// DECIMAL.
    Decimal {
        /// Digits in all.
        width: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// VARCHAR.
    Text,
    /// BLOB.
    Blob,
    /// A list.
    List(Box<Type>),
    /// A fixed-size array and its size.
    Array(Box<Type>, usize),
    /// Anything else, by its SQL name.
    Other(String),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Null => f.write_str("NULL"),
            Type::Unresolved => f.write_str("an unresolved parameter"),
            Type::Int(IntType::I8) => f.write_str("TINYINT"),
            Type::Int(IntType::I16) => f.write_str("SMALLINT"),
            Type::Int(IntType::I32) => f.write_str("INTEGER"),
            Type::Int(IntType::I64) => f.write_str("BIGINT"),
            Type::Int(IntType::I128) => f.write_str("HUGEINT"),
            Type::Int(IntType::U8) => f.write_str("UTINYINT"),
            Type::Int(IntType::U16) => f.write_str("USMALLINT"),
            Type::Int(IntType::U32) => f.write_str("UINTEGER"),
            Type::Int(IntType::U64) => f.write_str("UBIGINT"),
            Type::Int(IntType::U128) => f.write_str("UHUGEINT"),
            Type::Boolean => f.write_str("BOOLEAN"),
            Type::Float => f.write_str("FLOAT"),
            Type::Double => f.write_str("DOUBLE"),
            Type::Decimal { width, scale } => write!(f, "DECIMAL({width},{scale})"),
            Type::Text => f.write_str("VARCHAR"),
            Type::Blob => f.write_str("BLOB"),
            Type::List(child) => write!(f, "{child}[]"),
            Type::Array(child, size) => write!(f, "{child}[{size}]"),
            Type::Other(name) => f.write_str(name),
        }
    }
}

impl Type {
    /// The type of list or array elements.
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::List(child) | Type::Array(child, _) => Some(child),
            _ => None,
        }
    }

    /// Reads a logical type without taking it over.
    ///
    /// # Safety
    /// `raw` is a live logical type.
    pub(super) unsafe fn read(raw: duckdb_logical_type) -> Type {
        // SAFETY: `raw` is live by contract; children are owned here and freed by LogicalType.
        unsafe {
            match duckdb_get_type_id(raw) {
                DUCKDB_TYPE_DUCKDB_TYPE_SQLNULL => Type::Null,
                DUCKDB_TYPE_DUCKDB_TYPE_INVALID => Type::Unresolved,
                DUCKDB_TYPE_DUCKDB_TYPE_TINYINT => Type::Int(IntType::I8),
                DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT => Type::Int(IntType::I16),
                DUCKDB_TYPE_DUCKDB_TYPE_INTEGER => Type::Int(IntType::I32),
                DUCKDB_TYPE_DUCKDB_TYPE_BIGINT => Type::Int(IntType::I64),
                DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT => Type::Int(IntType::I128),
                DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT => Type::Int(IntType::U8),
                DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT => Type::Int(IntType::U16),
                DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER => Type::Int(IntType::U32),
                DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT => Type::Int(IntType::U64),
                DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT => Type::Int(IntType::U128),
                // A literal whose width the binder has not chosen yet.
                DUCKDB_TYPE_DUCKDB_TYPE_INTEGER_LITERAL => Type::Int(IntType::I32),
                DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN => Type::Boolean,
                DUCKDB_TYPE_DUCKDB_TYPE_FLOAT => Type::Float,
                DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE => Type::Double,
                DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR | DUCKDB_TYPE_DUCKDB_TYPE_STRING_LITERAL => Type::Text,
                DUCKDB_TYPE_DUCKDB_TYPE_BLOB => Type::Blob,
                DUCKDB_TYPE_DUCKDB_TYPE_LIST => {
                    Type::List(Box::new(LogicalType(duckdb_list_type_child_type(raw)).describe()))
                }
                DUCKDB_TYPE_DUCKDB_TYPE_ARRAY => Type::Array(
                    Box::new(LogicalType(duckdb_array_type_child_type(raw)).describe()),
                    usize::try_from(duckdb_array_type_array_size(raw)).unwrap_or(usize::MAX),
                ),
                DUCKDB_TYPE_DUCKDB_TYPE_DECIMAL => {
                    Type::Decimal { width: duckdb_decimal_width(raw), scale: duckdb_decimal_scale(raw) }
                }
                id => Type::Other(simple_name(id).into()),
            }
        }
    }
}

fn simple_name(id: duckdb_type) -> &'static str {
    match id {
        DUCKDB_TYPE_DUCKDB_TYPE_DATE => "DATE",
        DUCKDB_TYPE_DUCKDB_TYPE_TIME => "TIME",
        DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP
        | DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_S
        | DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_MS
        | DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_NS
        | DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_TZ => "TIMESTAMP",
        DUCKDB_TYPE_DUCKDB_TYPE_INTERVAL => "INTERVAL",
        DUCKDB_TYPE_DUCKDB_TYPE_ENUM => "ENUM",
        DUCKDB_TYPE_DUCKDB_TYPE_STRUCT => "STRUCT",
        DUCKDB_TYPE_DUCKDB_TYPE_MAP => "MAP",
        DUCKDB_TYPE_DUCKDB_TYPE_UNION => "UNION",
        DUCKDB_TYPE_DUCKDB_TYPE_UUID => "UUID",
        DUCKDB_TYPE_DUCKDB_TYPE_BIT => "BIT",
        DUCKDB_TYPE_DUCKDB_TYPE_BIGNUM => "BIGNUM",
        _ => "another type",
    }
}

/// A logical type that is freed with its owner.
pub(super) struct LogicalType(pub duckdb_logical_type);

impl LogicalType {
    pub fn describe(&self) -> Type {
        // SAFETY: self.0 is live until drop.
        unsafe { Type::read(self.0) }
    }
}

impl Drop for LogicalType {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { duckdb_destroy_logical_type(&mut self.0) }
    }
}

/// Type of a declared parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// Anything; the function looks at the type when it binds.
    Any,
    /// VARCHAR.
    Text,
    /// BLOB.
    Blob,
    /// DOUBLE.
    Double,
    /// BOOLEAN.
    Boolean,
    /// BIGINT.
    BigInt,
    /// UBIGINT.
    UBigInt,
    /// HUGEINT.
    HugeInt,
    /// UHUGEINT.
    UHugeInt,
    /// FLOAT[n][].
    FloatArrayList(usize),
    /// BIGINT[].
    BigIntList,
}

impl Parameter {
    pub(super) fn logical(self) -> LogicalType {
        let id = match self {
            Parameter::FloatArrayList(size) => {
                let child = Column::FloatArray(size).logical();
                // SAFETY: a plain constructor, which copies its child.
                return LogicalType(unsafe { duckdb_create_list_type(child.0) });
            }
            Parameter::BigIntList => return Column::BigIntList.logical(),
            Parameter::BigInt => DUCKDB_TYPE_DUCKDB_TYPE_BIGINT,
            Parameter::UBigInt => DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT,
            Parameter::HugeInt => DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT,
            Parameter::UHugeInt => DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT,
            Parameter::Any => DUCKDB_TYPE_DUCKDB_TYPE_ANY,
            Parameter::Text => DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR,
            Parameter::Blob => DUCKDB_TYPE_DUCKDB_TYPE_BLOB,
            Parameter::Double => DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE,
            Parameter::Boolean => DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN,
        };
        // SAFETY: a plain constructor.
        LogicalType(unsafe { duckdb_create_logical_type(id) })
    }
}

/// Names and types of the fields of a STRUCT.
pub type Fields = &'static [(&'static CStr, Column)];

/// Type of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// BIGINT.
    BigInt,
    /// INTEGER.
    Integer,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// HUGEINT.
    HugeInt,
    /// BOOLEAN.
    Boolean,
    /// TIMESTAMP, microseconds since the Unix epoch.
    Timestamp,
    /// VARCHAR.
    Text,
    /// BLOB.
    Blob,
    /// FLOAT[].
    FloatList,
    /// FLOAT[n].
    FloatArray(usize),
    /// BIGINT[].
    BigIntList,
    /// BIGINT[][].
    BigIntListList,
    /// STRUCT(...): names and types of its fields.
    Struct(Fields),
    /// STRUCT(...)[].
    StructList(Fields),
}

impl Column {
    pub(super) fn logical(self) -> LogicalType {
        // SAFETY: plain constructors; a list, array or struct constructor copies its children (and names); the children are
        // freed here.
        unsafe {
            let simple = |id| LogicalType(duckdb_create_logical_type(id));
            match self {
                Column::BigInt => simple(DUCKDB_TYPE_DUCKDB_TYPE_BIGINT),
                Column::Integer => simple(DUCKDB_TYPE_DUCKDB_TYPE_INTEGER),
                Column::Float => simple(DUCKDB_TYPE_DUCKDB_TYPE_FLOAT),
                Column::Double => simple(DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE),
                Column::HugeInt => simple(DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT),
                Column::Boolean => simple(DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN),
                Column::Timestamp => simple(DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP),
                Column::Text => simple(DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR),
                Column::Blob => simple(DUCKDB_TYPE_DUCKDB_TYPE_BLOB),
                Column::FloatList => {
                    let child = simple(DUCKDB_TYPE_DUCKDB_TYPE_FLOAT);
                    LogicalType(duckdb_create_list_type(child.0))
                }
                Column::FloatArray(size) => {
                    let child = simple(DUCKDB_TYPE_DUCKDB_TYPE_FLOAT);
                    LogicalType(duckdb_create_array_type(child.0, size as idx_t))
                }
                Column::BigIntList => {
                    let child = simple(DUCKDB_TYPE_DUCKDB_TYPE_BIGINT);
                    LogicalType(duckdb_create_list_type(child.0))
                }
                Column::BigIntListList => {
                    let child = simple(DUCKDB_TYPE_DUCKDB_TYPE_BIGINT);
                    let inner = LogicalType(duckdb_create_list_type(child.0));
                    LogicalType(duckdb_create_list_type(inner.0))
                }
                Column::StructList(fields) => {
                    let child = Column::Struct(fields).logical();
                    LogicalType(duckdb_create_list_type(child.0))
                }
                Column::Struct(fields) => {
                    let types: Vec<LogicalType> = fields.iter().map(|(_, column)| column.logical()).collect();
                    let mut types: Vec<_> = types.iter().map(|ty| ty.0).collect();
                    let mut names: Vec<_> = fields.iter().map(|(name, _)| name.as_ptr()).collect();
                    LogicalType(duckdb_create_struct_type(
                        types.as_mut_ptr(),
                        names.as_mut_ptr(),
                        fields.len() as idx_t,
                    ))
                }
            }
        }
    }

    /// Bytes of one element of the vector's own data (0 where only strings are assigned).
    pub(super) fn width(self) -> usize {
        match self {
            Column::BigInt | Column::Timestamp | Column::Double => 8,
            Column::Integer | Column::Float => 4,
            Column::HugeInt => size_of::<duckdb_hugeint>(),
            Column::Boolean => 1,
            Column::Text | Column::Blob => size_of::<duckdb_string_t>(),
            Column::FloatList | Column::BigIntList | Column::BigIntListList | Column::StructList(_) => {
                size_of::<duckdb_list_entry>()
            }
            Column::FloatArray(_) | Column::Struct(_) => 0,
        }
    }
}
