"""Pictures in SVG: graphs, sparsity patterns, charts. They need no system package."""
