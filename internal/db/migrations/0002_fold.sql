-- +goose Up

-- SQLite gets its fold function from the program.
SELECT 1;
