"""Price straight lines, sweeps and loops before they are built."""
