"""The generated pages of docs/reference. One function per page makes text from types and tables of the code; `make
reference` writes the pages."""
