#include "tile_ops.h"

#define TABLE fk_ops
#define SELECT fk_select
#include "select_template.h"
