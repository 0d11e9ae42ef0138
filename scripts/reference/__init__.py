"""The generated pages of docs/reference, each a function from types and tables of the code to text; `make reference`
writes them."""
