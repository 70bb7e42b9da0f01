-- Makes the table of the example's orders, which ends with the connection.
CREATE TEMPORARY TABLE shop_order (id bigint PRIMARY KEY, customer text NOT NULL)
