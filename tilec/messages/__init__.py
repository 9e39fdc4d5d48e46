"""What people are told: errors with a position and help, and the report of decisions."""
