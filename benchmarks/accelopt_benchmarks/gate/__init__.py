"""Detection rate, false alarms and time of the gate."""
