"""What the editor shows and offers, as plain data that know no LSP."""
