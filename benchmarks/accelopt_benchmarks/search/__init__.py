"""The search strategies compared with a simulated proposer, and the tokens of a candidate."""
