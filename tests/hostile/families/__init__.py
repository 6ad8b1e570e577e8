"""The families of the corpus, one small module each."""
