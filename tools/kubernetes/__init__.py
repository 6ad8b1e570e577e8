"""Writes what deploy/kubernetes/ takes from other files of the project."""
