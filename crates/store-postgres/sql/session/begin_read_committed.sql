-- Begins a transaction on a connection whose session has settings of its own. It sees what others committed while it waited for a lock.
START TRANSACTION ISOLATION LEVEL READ COMMITTED
