/* A tenth of the attack on certificates of cut language models; long_lm_attack.c is all of it. */
#include "lm_attack.h"

static void no_certificate_is_broken(void **state)
{
    (void)state;
    la_many(1, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_certificate_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
