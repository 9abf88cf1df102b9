/* Tests src/quant/verify.c: a tenth of the attack on certificates of quantized models;
 * long_quant_attack.c is all of it. */
#include "quant_attack.h"

static void no_certificate_is_broken(void **state)
{
    (void)state;
    qa_many(1, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_certificate_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
