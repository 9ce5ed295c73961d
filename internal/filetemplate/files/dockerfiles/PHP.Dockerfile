FROM php:8-apache
COPY . /var/www/html/
