//! The password of a backend: random, made once per home, kept in a file for this user only.

use std::fs;

use uuid::Uuid;

use super::{Home, StackError};

/// The user that PostgreSQL and RabbitMQ know; Redis has a password only.
pub(super) const USER: &str = "lastunit";

/// 32 hexadecimal digits, so that it needs no escaping in a URL, an Erlang term or a Redis command.
pub(super) fn password(home: &Home) -> Result<String, StackError> {
    let path = home.file("password");
    match fs::read_to_string(&path) {
        Ok(password) if password.len() == 32 => Ok(password),
        _ => {
            let password = Uuid::new_v4().simple().to_string();
            home.write("password", &password)?;
            Ok(password)
        }
    }
}
