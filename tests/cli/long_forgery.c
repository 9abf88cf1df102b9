/* Every change of every field of a certificate of each kind of cut: what still verifies is weaker,
 * left out, within a tolerance, or the writer's word (tests/support/forge.h). */
#include "forgery.h"

static void no_field_can_be_changed_to_say_more(void **state)
{
    (void)state;
    forgery(1, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_field_can_be_changed_to_say_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
