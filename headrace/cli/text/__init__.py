"""What commands print: tables, plans, status and problems as text that fits the terminal."""
