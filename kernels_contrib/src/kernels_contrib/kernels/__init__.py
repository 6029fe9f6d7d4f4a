"""What the kernels share: profiles, mixtures, products on a line and near pairs with a grid."""
