-- Inserts an order.
INSERT INTO shop_order (id, customer) VALUES ($1, $2)
