"""What people type and see. Writes nothing but switches, settings and what the verbs say they write."""
