"""Checks of user input; every error says what was found, what is needed, and how to get there."""
