"""Measurements of the project itself: gate, emulators, search strategies, server, hosts and GPU. In a checkout only."""
