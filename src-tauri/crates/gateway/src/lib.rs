//! The MCP socket: agents connect here.
