"""The paper's results, one experiment a file. Each returns rows and draws from them."""
