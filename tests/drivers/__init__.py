"""Tests of the room drivers."""
