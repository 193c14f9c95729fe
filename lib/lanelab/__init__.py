"""Lane Lab: a lab notebook for serving campaigns that can be executed, replayed and published."""

__version__ = "0.1.0"
