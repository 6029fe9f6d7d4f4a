#include "parity_ops.h"

#define TABLE fk_parity_ops
#define SELECT fk_parity_select
#include "select_template.h"
