-- Creates the example's table, which exists until the connection closes.
CREATE TEMPORARY TABLE shop_order (id bigint PRIMARY KEY, customer text NOT NULL)
