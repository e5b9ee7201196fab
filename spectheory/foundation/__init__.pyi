from . import arrays as arrays
