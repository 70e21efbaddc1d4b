"""What producers send by HTTP, on its way into the log. Nothing here knows of HTTP."""
