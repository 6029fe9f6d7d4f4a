#include "box_ops.h"

#define TABLE fk_box_ops
#define SELECT fk_box_select
#include "select_template.h"
