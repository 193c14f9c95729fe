"""Results that others measured, as receipts of ours. One module or package a source; each says what it keeps."""
