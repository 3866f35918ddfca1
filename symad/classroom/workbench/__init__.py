"""A page in the browser on which functions are typed, differentiated, drawn, compiled and compared, all linked."""
