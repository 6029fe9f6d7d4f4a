"""Code shared by the kernels: profiles, mixtures, products on a line, and near pairs with a grid."""
