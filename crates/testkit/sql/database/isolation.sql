-- Sets the default isolation level of transactions in this database.
ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}';
