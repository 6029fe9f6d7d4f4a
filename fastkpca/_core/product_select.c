#include "product_ops.h"

#define TABLE fk_product_ops
#define SELECT fk_product_select
#include "select_template.h"
