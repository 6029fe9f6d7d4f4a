"""The kernels, one a file, and what they share: profiles, mixtures, products on a line and near pairs with a grid."""
