"""PTX text as records: tokens, statements, variables, instructions."""
