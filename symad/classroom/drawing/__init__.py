"""Pictures in SVG: graphs, patterns of matrices, charts; without any system package."""
