"""The website: notebooks executed in publish mode, pages rendered by Quarto or the fallback, and the gate."""
