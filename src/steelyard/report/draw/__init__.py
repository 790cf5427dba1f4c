"""The pen: scales, axes, marks and SVG. It draws what it is given and computes no statistic."""
