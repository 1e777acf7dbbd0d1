//! `[[ … ]]`: it starts nothing itself, but its words may, and some are evaluated as arithmetic.

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate, Word};

use super::ScriptWalker;
use crate::opaque::OpaqueReason;
use crate::variable;
use crate::word;

impl ScriptWalker {
    pub(super) fn extended_test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.extended_test(left);
                self.extended_test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.extended_test(inner);
            }
            ExtendedTestExpr::UnaryTest(predicate, operand) => {
                let names_a_variable = matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned
                        | UnaryPredicate::ShellVariableIsSetAndNameRef
                );
                if names_a_variable && !variable::is_name(&operand.value) {
                    self.evaluated(operand);
                }
                self.bystander(&operand.value);
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                self.bystander(&left.value);
                self.binary_test(comparison(predicate), left, right);
            }
        }
    }

    fn binary_test(&mut self, kind: TestComparison, left: &Word, right: &Word) {
        match kind {
            TestComparison::Text => self.bystander(&right.value),
            TestComparison::Number => {
                self.bystander(&right.value);
                for operand in [left, right] {
                    if !word::is_plain_arithmetic(&operand.value) {
                        self.evaluated(operand);
                    }
                }
            }
            // Shells parse these words by rules of their own.
            TestComparison::Expression => {
                self.opaque(&right.value, OpaqueReason::Ambiguous);
                self.take_apart(&right.value);
            }
        }
    }

    fn evaluated(&mut self, word: &Word) {
        self.opaque(&word.value, OpaqueReason::Evaluated);
        // A quoted subscript is text to this reader and a script to the shell.
        self.take_apart(word.value.trim_matches('\''));
    }
}

#[derive(Clone, Copy)]
enum TestComparison {
    Text,
    Number,
    Expression,
}

fn comparison(predicate: &BinaryPredicate) -> TestComparison {
    match predicate {
        BinaryPredicate::FilesReferToSameDeviceAndInodeNumbers
        | BinaryPredicate::LeftFileIsNewerOrExistsWhenRightDoesNot
        | BinaryPredicate::LeftFileIsOlderOrDoesNotExistWhenRightDoes
        | BinaryPredicate::StringExactlyMatchesPattern
        | BinaryPredicate::StringDoesNotExactlyMatchPattern
        | BinaryPredicate::StringExactlyMatchesString
        | BinaryPredicate::StringDoesNotExactlyMatchString
        | BinaryPredicate::LeftSortsBeforeRight
        | BinaryPredicate::LeftSortsAfterRight => TestComparison::Text,
        BinaryPredicate::StringMatchesRegex | BinaryPredicate::StringContainsSubstring => {
            TestComparison::Expression
        }
        BinaryPredicate::ArithmeticEqualTo
        | BinaryPredicate::ArithmeticNotEqualTo
        | BinaryPredicate::ArithmeticLessThan
        | BinaryPredicate::ArithmeticLessThanOrEqualTo
        | BinaryPredicate::ArithmeticGreaterThan
        | BinaryPredicate::ArithmeticGreaterThanOrEqualTo => TestComparison::Number,
    }
}
