-- Has every statement planned anew when it is used next, for tables as large as they are by then.
DISCARD PLANS
