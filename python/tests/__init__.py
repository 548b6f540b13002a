"""Tests of the client: by themselves, against servers that misbehave, and with a real farm."""
