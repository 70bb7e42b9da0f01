-- The columns that an enqueue sets and a redrive copies.
workspace_id, definition_id, version_id, priority, params, trace_context, bytes
