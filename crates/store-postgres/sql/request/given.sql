-- What an enqueue gives a request and a redrive carries on.
workspace_id, definition_id, version_id, priority, params, trace_context
