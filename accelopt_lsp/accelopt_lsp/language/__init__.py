"""NKI and Triton as languages: what a name means, and what can be written where the cursor stands."""
