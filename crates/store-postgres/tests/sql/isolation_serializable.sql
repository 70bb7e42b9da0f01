-- Makes every transaction of the session SERIALIZABLE.
SET default_transaction_isolation = 'serializable'
